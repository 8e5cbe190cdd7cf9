"""Models made small and handed to other runtimes."""
