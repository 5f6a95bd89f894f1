"""What `/metrics` tells, read from the job store at scrape time. Changes nothing."""
