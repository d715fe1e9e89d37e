//! The page of a list, which each command that lists something takes.

use clap::Args;
use tenure_core::bounds::LIST_DEFAULT;
use tenure_core::requests::Page;

use crate::args::value::page_size;

/// A page of a list.
#[derive(Args, Debug, Clone)]
pub struct PageArgs {
    /// Items per page, 1 to 1,000.
    #[arg(long, value_name = "N", default_value_t = LIST_DEFAULT)]
    #[arg(value_parser = page_size)]
    pub max: usize,
    /// Continue after the previous page: its `next`.
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

impl PageArgs {
    /// As the engine takes it.
    pub fn page(self) -> Page {
        Page { max: self.max, cursor: self.cursor }
    }
}
