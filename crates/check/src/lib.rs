//! history to verdict and a minimal story; one file per checker; pure
