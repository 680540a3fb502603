"""Makes records on other machines: sends what they need, follows the run, and takes in what comes back."""
