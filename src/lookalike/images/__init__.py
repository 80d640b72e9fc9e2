"""Images: decoding, perceptual hashes, thumbnails, and the medium "images".

Pillow (the extra `images`) is imported when the first image is read.
"""

from typing import TYPE_CHECKING

from lookalike.lazy import lazy_names

if TYPE_CHECKING:
    from lookalike.images.image_hash import ImageHash as ImageHash
    from lookalike.images.thumbnails import thumbnail as thumbnail
else:
    __all__, __getattr__, __dir__ = lazy_names(
        globals(),
        {"lookalike.images.image_hash": "ImageHash", "lookalike.images.thumbnails": "thumbnail"},
    )
