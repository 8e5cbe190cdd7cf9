"""Documents to training rows: the plan of all rows, and the rows gathered from the store."""
