"""Services here and on other machines: units and containers made of what is rendered, and power limits."""
