"""Mail servers to test against, over real sockets."""
