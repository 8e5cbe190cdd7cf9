"""What is asked of the network, one file for each kind of question."""
