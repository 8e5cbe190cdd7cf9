"""The loop, optimisers, schedules, evaluation, and the run folder."""
