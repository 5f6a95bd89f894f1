"""A second strategy tried on a share of the live jobs, unseen (E7): docs/evaluation.md."""
