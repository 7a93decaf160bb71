"""The views of the page Hosts, and the questions of ssh as dialogs."""
