"""Free ports for tests whose programs are told in advance where to listen."""

from tacit.demo.ports import free_addresses, free_ports

__all__ = ["free_addresses", "free_ports"]
