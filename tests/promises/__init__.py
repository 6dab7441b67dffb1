"""The promises at their full size, under fire."""

# Names the guard that a server of a proof is to go without; read where its door is opened.
FAULT = "DRAMATIS_PLANTED_FAULT"
