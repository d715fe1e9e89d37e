// Users, each of whom has an article read: one call, which is answered at once, however full it is.
//
// node push_articles.js scrapyd http://site.example 1 2 3, or `command` for `scrapyd`

import { Tenure } from "tenure";

const [way, site, ...articles] = process.argv.slice(2);
const t = new Tenure();

/** Asks for one article, and returns how long the answer took. */
async function push(article: string): Promise<number> {
  const url = `${site}/articles/${article}/1`;
  const began = performance.now();
  await t.push("articles", way === "scrapyd" ? { project: "articles", spider: "article", args: { url } } : { url }, {
    id: `article-${article}`,
    needs: ["limit:articles"],
    // Workers are killed all the time here, which says nothing against a job.
    retry: { maxAttempts: 5, maxLost: 0 },
  });
  return performance.now() - began;
}

// As many users as there are articles push at the same time.
const slowest = Math.max(...(await Promise.all(articles.map(push))));
console.log(`${articles.length} users at once; the slowest answer took ${slowest.toFixed(0)} ms`);
