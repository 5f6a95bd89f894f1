-- Takes a job that waits out of its queue, or gives back the place of one that was under way, once.
-- KEYS 1... as in `give_back`
-- ARGV 1 now   2 ttl (s)   3 job id   4 tenant   5 quantum (leaves)   6 its leaves   7 ends that are kept
-- Returns 1 when it waited, 2 when it was under way, 0 when neither.
-- with give_back
return give_back(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]))
