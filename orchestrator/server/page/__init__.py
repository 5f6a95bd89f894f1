"""The page: HTML for people, rendered here from what a client bound to the caller's tenant gives. Decides nothing."""
