"""The slow, obvious truth that everything fast is compared with."""
