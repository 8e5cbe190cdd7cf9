"""How good sentence vectors are: similarity, pairs, retrieval, clustering, geometry; MTEB's model; two pictures."""
