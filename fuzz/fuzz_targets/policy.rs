//! Any bytes taken as a script: never a panic, never lowered by a wrapper or another command.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_core::policy::{Class, Risk};
use windlass_shell::{Context, analyze, analyze_bytes};

fuzz_target!(|bytes: &[u8]| {
    let context = Context::new("/workspace", "/home/user");
    let analysis = analyze_bytes(bytes, &context);
    let Ok(text) = std::str::from_utf8(bytes) else {
        assert!(analysis.assessment.class >= Class::Opaque);
        return;
    };
    for command in analysis.flat() {
        assert!(command.assessment.risk <= analysis.assessment.risk);
    }
    // A text that does not parse is HIGH as a whole; wrapped, it still must be.
    let quoted = text.replace('\'', r"'\''");
    let wrapped = analyze(&format!("sh -c '{quoted}'"), &context).assessment.risk;
    let least = analysis.assessment.risk.min(Risk::High);
    assert!(wrapped >= least, "{text:?}: {wrapped} in `sh -c`, {} alone", analysis.assessment.risk);
    let followed = analyze(&format!("rm -rf x\n{text}"), &context).assessment.risk;
    assert!(followed >= Risk::High, "{text:?} hides the line before it");
});
