"""What can be begun in the browser, by forms of use cases."""
