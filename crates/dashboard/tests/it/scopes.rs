//! Sessions of tokens with scopes: what their pages show, and the buttons that they have.

use std::collections::BTreeSet;
use std::sync::Arc;

use tenure_core::access::{GivenGrants, Grants, Scope};
use tenure_core::names::{Namespace, QueueName};
use tenure_core::secret::Secret;
use tenure_dashboard::{History, Minute};
use tenure_server::{ListedToken, Tokens, token_hash};

use crate::scene::{NAMES, SECRETS, Scene, filled, paths};
use crate::served::{Got, Served, Store};

const ROOT: &str = "root-token-of-more-than-32-characters-0";
const FORM: &str =
    "Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: same-origin\r\n";
/// Contents of the scene that `read` shows and `view` does not: a payload, and an error.
const CONTENTS: [&str; 2] = ["https://example.com/", "upstream connect error"];

pub fn token(name: &str) -> String {
    format!("tnr_{name}_x")
}

pub fn listed(name: &str, scopes: &[&str], namespaces: &[&str]) -> ListedToken {
    let texts = |all: &[&str]| all.iter().map(ToString::to_string).collect();
    let given = GivenGrants {
        name: name.to_owned(),
        scopes: texts(scopes),
        namespaces: texts(namespaces),
        ..GivenGrants::default()
    };
    let sha256 = token_hash(token(name).as_bytes());
    ListedToken { grants: Grants::read(&given).unwrap(), sha256 }
}

/// Counts of calls in three namespaces.
struct Called;

impl History for Called {
    fn minutes(&self, _: &Namespace, _: Option<&QueueName>, _: usize) -> Vec<Minute> {
        Vec::new()
    }
    fn namespaces(&self) -> Vec<Namespace> {
        ["team", "team-2", "web"].map(|name| Namespace::parse(name).unwrap()).to_vec()
    }
}

pub fn served(listed: Vec<ListedToken>) -> Served {
    locked(listed, None)
}

fn locked(listed: Vec<ListedToken>, history: Option<Arc<dyn History>>) -> Served {
    let tokens = Tokens::locking("seed");
    tokens.replace(vec![Secret::new(ROOT)]);
    tokens.replace_listed(listed);
    Served::locked(Store::Memory, tokens, history)
}

/// The header with the cookie of a session that this token began.
pub fn session(served: &Served, token: &str) -> String {
    let got = served.request("POST", "/login", FORM, &format!("token={token}"));
    let set = got.header("set-cookie").unwrap_or_else(|| panic!("{}", got.body));
    assert!(!set.contains(token), "{set}");
    format!("Cookie: {}\r\n", set.split(';').next().unwrap())
}

pub fn get(served: &Served, session: &str, path: &str) -> Got {
    served.request("GET", path, session, "")
}

pub fn post(served: &Served, session: &str, path: &str, form: &str) -> Got {
    served.request("POST", path, &format!("{FORM}{session}"), form)
}

/// Fills the scene, which reads some pages as the holder of all rights.
fn scene(served: &mut Served) -> Scene {
    served.session = session(served, ROOT);
    let scene = filled(served);
    served.session = String::new();
    scene
}

/// The values of an attribute in a page.
fn values<'p>(page: &'p str, attribute: &str) -> impl Iterator<Item = &'p str> {
    let begin = format!("{attribute}=\"");
    page.split(&begin.clone())
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect::<Vec<_>>()
        .into_iter()
}

/// The targets of the forms that act: those that are posted.
fn posted(page: &str) -> BTreeSet<String> {
    let forms = page.split("<form").skip(1).filter_map(|form| form.split('>').next());
    let posted = forms.filter(|form| form.contains("method=\"post\""));
    let targets = posted.filter_map(|form| values(form, "action").next().map(str::to_owned));
    targets.filter(|target| target != "/logout").collect()
}

#[test]
fn no_session_has_a_button_or_link_that_it_may_not_use() {
    for (name, scopes) in [
        ("view", &["view"][..]),
        ("read", &["read"]),
        ("operator", &["view", "operate"]),
        ("admin", &["read", "admin"]),
    ] {
        // Its forms are sent at the end, and some delete things.
        let mut served = served(vec![listed(name, scopes, &["*"])]);
        let scene = scene(&mut served);
        let root = session(&served, ROOT);
        let own = session(&served, &token(name));
        let (mut links, mut forms, mut shown) = (BTreeSet::new(), BTreeSet::new(), 0);
        for path in paths(&scene, &NAMES.map(str::to_owned)) {
            let got = get(&served, &own, &path);
            assert!(matches!(got.status, 200 | 403), "{name} {path}: {}", got.status);
            let whole = get(&served, &root, &path).page();
            if got.status == 403 {
                assert!(whole.contains("method=\"post\""), "{name} may look at {path}");
                continue;
            }
            shown += 1;
            assert!(got.body.contains(&format!("<span class=\"mono\">{name}</span>")), "{path}");
            forms.extend(posted(&got.body));
            links.extend(
                values(&got.body, "href").filter(|to| to.starts_with('/')).map(str::to_owned),
            );
        }
        assert!(shown > 25, "{name}: {shown}");
        for link in links.iter().filter(|link| !link.starts_with("/assets/")) {
            let link = link.replace("&amp;", "&");
            assert_ne!(get(&served, &own, &link).status, 403, "{name} {link}");
        }
        let expected = match name {
            "view" | "read" => BTreeSet::from(["/system/audit".to_owned()]),
            _ => forms.clone(),
        };
        assert_eq!(forms, expected, "{name}");
        for form in &forms {
            // Without its fields an action is refused for another reason, or done.
            let got = post(&served, &own, form, "");
            assert_ne!(got.status, 403, "{name} {form}");
        }
        assert!(
            name != "operator" || forms.iter().any(|form| form.ends_with("/pause")),
            "{forms:?}"
        );
        assert!(name != "admin" || forms.iter().any(|form| form.ends_with("/set")), "{forms:?}");
    }
}

#[test]
fn pages_show_contents_to_read_alone() {
    let all = [listed("view", &["view", "operate"], &["*"]), listed("read", &["read"], &["*"])];
    let mut served = served(all.to_vec());
    let scene = scene(&mut served);
    let mut pages = paths(&scene, &NAMES.map(str::to_owned));
    pages.extend([
        format!("/jobs/{}?show=content", scene.waits),
        "/jobs?q=error:upstream".to_owned(),
        "/queues/crawl".to_owned(),
    ]);
    let seen = |name: &str| {
        let own = session(&served, &token(name));
        let pages = pages.iter().map(|path| get(&served, &own, path).body);
        let mut seen = BTreeSet::new();
        for page in pages {
            assert!(SECRETS[..1].iter().all(|secret| !page.contains(secret)), "data is shown");
            seen.extend(CONTENTS.into_iter().filter(|content| page.contains(content)));
        }
        seen
    };
    assert_eq!(seen("read"), BTreeSet::from(CONTENTS), "the pages must show contents");
    assert_eq!(seen("view"), BTreeSet::new());
    let own = session(&served, &token("view"));
    let got = get(&served, &own, "/jobs?q=error:upstream");
    assert!(got.body.contains("lacks the scope") || got.status == 403, "{}", got.body);
}

#[test]
fn a_form_without_its_scope_changes_nothing() {
    let one = |scope: &Scope| listed(scope.as_str(), &["view", scope.as_str()], &["*"]);
    let mut served = served(Scope::ALL.iter().map(one).collect());
    let scene = scene(&mut served);
    for (path, form, needs) in [
        ("/queues/crawl/pause", "for=1s", Scope::Operate),
        ("/queues/crawl/set", "max_waiting=5", Scope::Admin),
        ("/limits/llm:tokens/delete", "", Scope::Admin),
        ("/pools/accounts/add", "id=x&data=1", Scope::Admin),
        ("/pools/accounts/resources/13800000009/ban", "", Scope::Operate),
        ("/schedules/news/run-now", "", Scope::Operate),
        ("/chosen", "do=delete&sure=1&job=mail-1", Scope::Operate),
        (&format!("/leases/{}", scene.lease), "", Scope::Operate),
        ("/jobs/index-0/again", "payload=1", Scope::Push),
        ("/system/audit", "", Scope::View),
    ] {
        for scope in Scope::ALL.iter().filter(|scope| **scope != needs) {
            let got = post(&served, &session(&served, &token(scope.as_str())), path, form);
            let may = needs == Scope::View;
            assert_eq!(got.status == 403, !may, "{path} with {scope}: {}", got.body);
            let says = format!("lacks the scope &quot;{needs}&quot;");
            assert!(may || got.body.contains(&says), "{path}: {}", got.body);
        }
    }
    let root = session(&served, ROOT);
    assert!(get(&served, &root, "/limits/llm:tokens").status == 200);
    assert!(get(&served, &root, "/jobs/mail-1").status == 200);
    for scope in [Scope::Push, Scope::Work, Scope::Metrics] {
        let alone = listed("alone", &[scope.as_str()], &["*"]);
        served.tokens.replace_listed(vec![alone]);
        let own = session(&served, &token("alone"));
        for path in ["/", "/jobs", "/system", "/live", "/jobs/mail-1", "/nothing"] {
            assert_eq!(get(&served, &own, path).status, 403, "{path} with {scope}");
        }
    }
}

#[test]
fn a_session_is_of_the_namespaces_of_its_token_and_ends_with_it() {
    let team = |scope: &str| listed("team", &[scope], &["team", "team-*"]);
    let served =
        locked(vec![team("view"), listed("other", &["view"], &["*"])], Some(Arc::new(Called)));
    let got = served.request("POST", "/login", FORM, &format!("token={}", token("team")));
    assert_eq!(got.leads_to(), "/?ns=team", "the main namespace is closed");
    let [own, other] = ["team", "other"].map(|name| session(&served, &token(name)));
    for (path, status) in [
        ("/?ns=team", 200),
        ("/jobs?ns=team-2", 200),
        ("/", 403),
        ("/jobs?ns=web", 403),
        ("/live?ns=web", 403),
        ("/system?ns=web", 403),
    ] {
        assert_eq!(get(&served, &own, path).status, status, "{path}");
    }
    assert_eq!(get(&served, &other, "/?ns=web").status, 200);
    // A cookie of one token with the name of another one.
    let forged = own.replace(".team.", ".other.");
    assert_ne!(forged, own);
    assert_eq!(get(&served, &forged, "/?ns=team").status, 401);
    let system = get(&served, &own, "/system?ns=team").page();
    assert!(system.contains("ns=team-2") && !system.contains("ns=web"), "{system}");
    assert!(get(&served, &other, "/system").page().contains("ns=web"));
    served.tokens.replace_listed(vec![team("push"), listed("other", &["view"], &["*"])]);
    assert_eq!(get(&served, &own, "/?ns=team").status, 403, "the grants are those of now");
    served.tokens.replace_listed(vec![listed("other", &["view"], &["*"])]);
    assert_eq!(get(&served, &own, "/?ns=team").status, 401);
    assert_eq!(get(&served, &other, "/").status, 200);
}

#[test]
fn an_administrator_sees_who_did_what() {
    let served = served(vec![
        listed("ann", &["view", "admin"], &["*"]),
        listed("op", &["view", "operate"], &["*"]),
    ]);
    let (ann, op) = (session(&served, &token("ann")), session(&served, &token("op")));
    assert_eq!(served.request("POST", "/login", FORM, "token=geheim").status, 401);
    assert_eq!(post(&served, &ann, "/limits/site/set", "concurrency=3").status, 303);
    assert_eq!(post(&served, &op, "/queues/mail/pause", "").status, 303);
    assert_eq!(post(&served, &op, "/limits/site/set", "concurrency=4").status, 403);
    assert_eq!(post(&served, &op, "/logout", "").status, 303);
    let page = get(&served, &ann, "/trail").page();
    for part in
        ["login", "logout", "pause_queue", "limit:site", "concurrency", "401 unauthorized", "page"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("geheim") && !page.contains("tnr_"), "{page}");
    assert!(page.contains("403 forbidden"), "{page}");
    let page = get(&served, &ann, "/trail?caller=op").page();
    assert!(page.contains("pause_queue") && !page.contains("concurrency:"), "{page}");
    // Others have neither the page nor its link.
    assert!(get(&served, &ann, "/").page().contains("href=\"/trail\""));
    let op = session(&served, &token("op"));
    assert!(!get(&served, &op, "/").page().contains("/trail"));
    assert_eq!(get(&served, &op, "/trail").status, 403);
}
