//! The programs in `examples/` work, in a store in memory. They are modules here, so that no binary is linked for each
//! of them; their `main` connects and calls the same function.
#![cfg(feature = "testing")]

use std::error::Error;

use tenure::Client;

macro_rules! examples {
    ($($name:ident $file:literal),* $(,)?) => {$(
        #[path = $file]
        #[allow(dead_code)]
        mod $name;

        #[tokio::test(flavor = "multi_thread")]
        async fn $name() -> Result<(), Box<dyn Error>> {
            $name::run(&Client::connect("memory:").await?).await
        }
    )*};
}

examples! {
    producer "../../examples/producer.rs",
    typed_worker "../../examples/typed_worker.rs",
    lock "../../examples/lock.rs",
    pool "../../examples/pool.rs",
    flow "../../examples/flow.rs",
    schedule "../../examples/schedule.rs",
}

// It has a test of its own.
#[path = "../../examples/testing_a_worker.rs"]
#[allow(dead_code)]
mod testing_a_worker;

#[test]
fn each_example_is_run_here() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let here = include_str!("examples.rs");
    let mut files = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(here.contains(&format!("\"../../examples/{name}\"")), "{name} is not run");
        files += 1;
    }
    assert_eq!(files, 7);
}
