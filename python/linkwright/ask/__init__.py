"""What is asked of a machine, and the one way to ask the native half."""
