"""Standing questions: kept in Redis, run by the ops pool in the batch lane, told of when cited facts change."""
