"""Images become bits: what is decoded, how it becomes a hash, and which files are images.

Pillow (the extra `images`) is imported when the first image is read.
"""

from lookalike.images.decode import SUFFIXES, is_image
from lookalike.images.image_hash import LEAST_QUALITY, HashedImage, ImageHash
from lookalike.images.thumbnails import thumbnail

__all__ = ["LEAST_QUALITY", "SUFFIXES", "HashedImage", "ImageHash", "is_image", "thumbnail"]
