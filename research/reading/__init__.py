"""How the network of ``probgap.reading`` is made: simulated tasks, and a fit to them."""
