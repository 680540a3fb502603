"""Where records are made: what a run would cost, on which workers and machines it runs."""
