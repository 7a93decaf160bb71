"""Processes of engines: started, followed, ended for certain."""
