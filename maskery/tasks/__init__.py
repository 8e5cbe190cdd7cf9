"""Fine-tuning: from labelled text to a model that does a task, and how well it does it."""
