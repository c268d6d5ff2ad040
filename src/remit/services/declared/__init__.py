"""`remit apply`: a company as a file declares it."""
