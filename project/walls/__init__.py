"""The second wall: requests that begin blind, and the database role that is held by it."""
