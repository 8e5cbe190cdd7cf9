"""What is known of words beyond the text itself: lexicons, similar words."""
