"""The job on a Spark of several processes, beside the local one and Spark MLlib."""
