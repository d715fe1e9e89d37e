struct F;
impl tenure_conformance::Factory for F {
    fn open(&self) -> tenure_conformance::Task<'_, tenure_conformance::Bench> { Box::pin(async { panic!("no") }) }
}
tenure_conformance::conformance_tests!(F);
