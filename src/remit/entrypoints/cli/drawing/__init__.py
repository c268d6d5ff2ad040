"""Tables, trees, letters and runs on the terminal."""
