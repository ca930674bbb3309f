//! The stage, tested on itself.

mod local_aws;
