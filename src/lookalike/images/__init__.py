"""Images: decoding, perceptual hashes, thumbnails, and the medium "images".

Pillow (the extra `images`) is imported when the first image is read.
"""
