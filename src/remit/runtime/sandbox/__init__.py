"""The sandbox: what a run's programs can see, call and use."""
