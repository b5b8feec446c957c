//! Reading any bytes as a command: never a panic, never lowered by a wrapper or another command.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_core::policy::command::{Context, read, read_bytes};
use windlass_core::policy::{Class, Risk};

fuzz_target!(|bytes: &[u8]| {
    let context = Context::new("/workspace", "/home/user");
    let reading = read_bytes(bytes, &context);
    let Ok(text) = std::str::from_utf8(bytes) else {
        assert!(reading.assessment.class >= Class::Opaque);
        return;
    };
    for command in reading.flat() {
        assert!(command.assessment.risk <= reading.assessment.risk);
    }
    // A text that does not parse is HIGH as a whole; wrapped, it still must be.
    let quoted = text.replace('\'', r"'\''");
    let wrapped = read(&format!("sh -c '{quoted}'"), &context).assessment.risk;
    let least = reading.assessment.risk.min(Risk::High);
    assert!(wrapped >= least, "{text:?}: {wrapped} in `sh -c`, {} alone", reading.assessment.risk);
    let followed = read(&format!("rm -rf x\n{text}"), &context).assessment.risk;
    assert!(followed >= Risk::High, "{text:?} hides the line before it");
});
