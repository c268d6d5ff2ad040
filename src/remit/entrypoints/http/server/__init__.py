"""The ASGI application around the routes: guard, protocol, streams, logs."""
