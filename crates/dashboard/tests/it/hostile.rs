//! Searches every page for names, labels and errors that would be markup, and for secrets.

use tenure_core::percent::encoded;

use crate::scene::{MARK, SECRETS, marked_names, named_so, paths};
use crate::served::Served;

#[test]
fn no_name_or_error_becomes_markup_and_no_secret_is_shown() {
    let served = Served::start();
    let scene = named_so(&served);
    let mut paths = paths(&scene, &marked_names());
    let name = encoded(MARK).to_string();
    paths.extend([
        format!("/jobs?q=error:{name}"),
        format!("/jobs?q={name}:1"),
        format!("/queues/x?did={name}"),
        format!("/jobs?did={name}&n={name}"),
        format!("/jobs?ns={name}"),
        format!("/{name}"),
    ]);
    let mut seen = 0;
    for path in paths {
        for language in ["en", "zh"] {
            let got = served.request("GET", &path, &format!("Accept-Language: {language}\r\n"), "");
            assert!(got.status < 500, "{path}: {}", got.body);
            let page = got.body;
            assert!(!page.contains("<xss"), "{path} lets a name become markup: {page}");
            // Each value of an attribute ends where the page ends it.
            assert!(!page.contains("a=\"b\""), "{path} lets a name end an attribute: {page}");
            assert!(!page.contains(SECRETS[0]), "{path} shows the data of a resource");
            let is_asked_for = path.ends_with("/edit");
            assert!(is_asked_for || !page.contains(SECRETS[1]), "{path} shows a payload");
            seen += page.matches("&lt;xss").count();
        }
    }
    assert!(seen > 50, "the names stand in {seen} places only: these pages show nothing");
}

#[test]
fn what_a_job_carries_is_text_also_when_it_is_shown() {
    let served = Served::start();
    let scene = named_so(&served);
    for path in
        [format!("/jobs/{}?show=content", scene.failed), format!("/jobs/{}/edit", scene.failed)]
    {
        let page = served.get(&path).page();
        assert!(page.contains(SECRETS[1]) && !page.contains("<xss"), "{path}: {page}");
    }
    assert!(!served.get(&format!("/jobs/{}?show=content", scene.waits)).body.contains("<xss"));
}
