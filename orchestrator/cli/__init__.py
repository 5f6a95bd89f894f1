"""The command line. Reads arguments, calls the client, prints; decides nothing about questions itself."""
