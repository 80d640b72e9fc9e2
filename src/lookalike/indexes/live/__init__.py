"""An index of MinHash rows under keys, which come and go while it is asked."""
