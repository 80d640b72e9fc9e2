"""Features become bits: the signers, what counts as a signature, and how far apart two are."""

from lookalike.signatures.arrays import Kernel as Kernel
from lookalike.signatures.arrays import as_queries as as_queries
from lookalike.signatures.arrays import as_signatures as as_signatures
from lookalike.signatures.arrays import hamming as hamming
from lookalike.signatures.arrays import kernels as kernels
from lookalike.signatures.bit_weights import quantize_weights as quantize_weights
from lookalike.signatures.bit_weights import restore_weights as restore_weights
from lookalike.signatures.estimates import estimated_radius as estimated_radius
from lookalike.signatures.estimates import estimated_similarity as estimated_similarity
from lookalike.signatures.files import SavedSignatures as SavedSignatures
from lookalike.signatures.files import load_hex as load_hex
from lookalike.signatures.files import load_signatures as load_signatures
from lookalike.signatures.files import save_signatures as save_signatures
from lookalike.signatures.files import signatures_from_hex as signatures_from_hex
from lookalike.signatures.files import signatures_to_hex as signatures_to_hex
from lookalike.signatures.minhash import BBitMinHash as BBitMinHash
from lookalike.signatures.minhash import MinHash as MinHash
from lookalike.signatures.minhash import WeightedMinHash as WeightedMinHash
from lookalike.signatures.projection import Projection as Projection
from lookalike.signatures.signer import Signer as Signer
from lookalike.signatures.signer import load_signer as load_signer
from lookalike.signatures.signer import signer_from_dict as signer_from_dict
from lookalike.signatures.simhash import SimHash as SimHash
from lookalike.signatures.topsig import TopSig as TopSig
