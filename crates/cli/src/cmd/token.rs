//! `tenure token`: makes a token, checks a file of tokens, and shows who the caller is to a server.
//!
//! A new token is printed once and kept nowhere: a file has its hash.

use std::path::Path;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use serde::{Deserialize, Serialize};
use tenure::remote::Callee;
use tenure_core::access::{GivenGrants, Grants, Scope};
use tenure_core::time::Moment;
use tenure_engine_api::ids::fill_random;
use tenure_server::{ListedToken, TOKEN_PREFIX, token_hash};

use crate::args::Global;
use crate::args::token::{TokenAction, TokenNewArgs};
use crate::cmd::doctor::server;
use crate::exit::{Failure, UNAVAILABLE};
use crate::output::clock;
use crate::output::page::Page;
use crate::output::table::{Table, or_dash};
use crate::output::{Output, hint};
use crate::settings::tokens_file;
use crate::store;

/// Random bytes of a token: nobody guesses 256 bits.
const RANDOM_BYTES: usize = 32;

/// Runs the action.
pub async fn run(out: Output, global: &Global, action: TokenAction) -> Result<(), Failure> {
    match action {
        TokenAction::New(args) => new(out, global, args),
        TokenAction::Check { file } => check(out, &file),
        TokenAction::Who => who(out, &global.url).await,
    }
}

#[derive(Serialize)]
struct NewToken {
    token: String,
    block: String,
}

fn new(out: Output, global: &Global, args: TokenNewArgs) -> Result<(), Failure> {
    let given = GivenGrants {
        name: args.name,
        scopes: args.scopes,
        namespaces: args.namespaces.unwrap_or_else(|| vec![global.namespace.to_string()]),
        queues: args.queues,
        needs: args.needs,
        expires: args.expires.map(|end| end.moment(clock::now())),
        calls: args.calls,
        in_flight: args.in_flight,
    };
    let grants = Grants::read(&given)
        .map_err(|no| Failure::usage(no.to_string()).hint("see `tenure help token new`"))?;
    let mut random = [0; RANDOM_BYTES];
    fill_random(&mut random).map_err(|why| Failure::new(UNAVAILABLE, why.to_string()))?;
    let token = format!("{TOKEN_PREFIX}{}_{}", grants.name(), BASE64URL_NOPAD.encode(&random));
    let block = block(&grants, &token_hash(token.as_bytes()));
    out.answer(&NewToken { token, block }, |new| format!("{}\n\n{}", new.token, new.block))?;
    if !out.json {
        hint(
            "the token is shown this once: give it to its user; add the block to the file of --tokens",
        );
    }
    Ok(())
}

/// The token as a table of the file.
fn block(grants: &Grants, sha256: &[u8; 32]) -> String {
    let list = |texts: Vec<String>| {
        let quoted: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
        format!("[{}]", quoted.join(", "))
    };
    let scopes = grants.scopes().iter().map(|scope| scope.to_string()).collect();
    let mut text = format!(
        "[[token]]\nname = {}\nsha256 = {}\nscopes = {}\nnamespaces = {}\n",
        quoted(grants.name()),
        quoted(&HEXLOWER.encode(sha256)),
        list(scopes),
        list(grants.namespaces().collect()),
    );
    if let Some(queues) = grants.queues() {
        text += &format!("queues = {}\n", list(queues.collect()));
    }
    if let Some(needs) = grants.needs() {
        text += &format!("needs = {}\n", list(needs.collect()));
    }
    if let Some(expires) = grants.expires() {
        text += &format!("expires = {expires}\n");
    }
    if let Some(calls) = grants.calls() {
        text += &format!("calls = {}\n", quoted(&calls.to_string()));
    }
    if let Some(in_flight) = grants.in_flight() {
        text += &format!("in_flight = {in_flight}\n");
    }
    text
}

/// A text as TOML writes it, which is as JSON does for a text without control characters.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A token as `check` and `who` show it.
#[derive(Serialize, Deserialize)]
struct Me {
    name: String,
    scopes: Vec<String>,
    namespaces: Vec<String>,
    queues: Option<Vec<String>>,
    needs: Option<Vec<String>>,
    expires: Option<Moment>,
    #[serde(default)]
    calls: Option<String>,
    #[serde(default)]
    in_flight: Option<u32>,
}

impl Me {
    fn of(token: &ListedToken) -> Self {
        let grants = &token.grants;
        Me {
            name: grants.name().to_owned(),
            scopes: grants.scopes().iter().map(|scope| scope.to_string()).collect(),
            namespaces: grants.namespaces().collect(),
            queues: grants.queues().map(Iterator::collect),
            needs: grants.needs().map(Iterator::collect),
            expires: grants.expires(),
            calls: grants.calls().map(|rate| rate.to_string()),
            in_flight: grants.in_flight(),
        }
    }
}

fn check(out: Output, file: &Path) -> Result<(), Failure> {
    let tokens: Vec<Me> = tokens_file::read(file)?.iter().map(Me::of).collect();
    let now = clock::now();
    out.answer(&tokens, |tokens| {
        let head = ["NAME", "SCOPES", "NAMESPACES", "QUEUES", "NEEDS", "EXPIRES"];
        let mut table = Table::new(&head);
        for me in tokens {
            let expires = me.expires.map(|end| {
                let over = if end <= now { " (over)" } else { "" };
                format!("{end}{over}")
            });
            table.row([
                me.name.clone(),
                me.scopes.join(" "),
                me.namespaces.join(" "),
                or_dash(me.queues.as_ref().map(|all| all.join(" "))),
                or_dash(me.needs.as_ref().map(|all| all.join(" "))),
                or_dash(expires),
            ]);
        }
        table.render("there is no token")
    })
}

async fn who(out: Output, url: &str) -> Result<(), Failure> {
    let url = store::address(url)?;
    let callee = Callee::of(&url).ok_or_else(|| {
        Failure::usage(format!("{url} is opened by this command itself, which needs no token"))
            .hint("name a server: tenure --url http://HOST:7171 token who")
    })?;
    let most_bytes = server::ANSWER_BYTES_MAX;
    let answer = server::first_good(&callee, &url, "/v1/me", "", most_bytes).await?;
    let me: Me = serde_json::from_slice(&answer)
        .map_err(|_| Failure::new(UNAVAILABLE, format!("{url} is no server of Tenure")))?;
    out.answer(&me, |me| {
        let mut page = Page::default();
        page.field("token", &me.name).field("may", may(&me.scopes));
        page.field("namespaces", all_or(Some(&me.namespaces).filter(|all| **all != ["*"])));
        page.field("queues", all_or(me.queues.as_ref()));
        page.field("limits and pools", all_or(me.needs.as_ref()));
        page.field("expires", me.expires.map_or("never".to_owned(), |end| end.to_string()));
        page.maybe("calls", me.calls.as_ref()).maybe("at once", me.in_flight);
        page.render()
    })
}

fn all_or(patterns: Option<&Vec<String>>) -> String {
    match patterns {
        None => "all".to_owned(),
        Some(patterns) if patterns.is_empty() => "none".to_owned(),
        Some(patterns) => patterns.join(", "),
    }
}

/// The scopes, each with its meaning; a server of another release may have more.
fn may(scopes: &[String]) -> String {
    let line = |name: &String| match name.parse::<Scope>() {
        Ok(scope) => format!("{scope}: {}", scope.about().replace('`', "")),
        Err(_) => name.clone(),
    };
    scopes.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_as_the_grants_that_it_was_made_of() {
        let texts = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        let given = GivenGrants {
            name: "crawler".to_owned(),
            scopes: texts(&["push", "work"]),
            namespaces: texts(&["web", "web-*"]),
            queues: Some(texts(&["a \"quoted\" \\ one", "é*"])),
            needs: Some(texts(&["limit:site:*", "pool:p"])),
            expires: "2027-06-30T00:00:00Z".parse().ok(),
            calls: Some("200/1s".to_owned()),
            in_flight: Some(64),
        };
        let grants = Grants::read(&given).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        std::fs::write(&path, block(&grants, &[7; 32])).unwrap();
        let read = tokens_file::read(&path).unwrap();
        assert_eq!((&read[0].grants, read[0].sha256), (&grants, [7; 32]));
    }
}
