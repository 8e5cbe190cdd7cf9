"""Reading labelled text: files of many kinds, and classes of the user's own, to `Examples`."""
