"""Commands about the instance and this installation."""
