"""What the workers do, one file for each step of the job."""
