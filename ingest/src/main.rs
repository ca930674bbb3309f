//! See the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A panic is a fault of the program, with the exit code of one: Rust's own 101 is in nobody's table.
    std::panic::catch_unwind(ingest::main).unwrap_or(ExitCode::from(geuneul::Outcome::Internal.exit_code()))
}
