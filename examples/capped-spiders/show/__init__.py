"""What `run` shows, one act for each page. Nothing here is needed to use Tenure."""
