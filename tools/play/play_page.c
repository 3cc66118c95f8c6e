/* play_page.c: the frame of a page and its style sheet. */
#include "play_page.h"
#include "error.h"
#include "html.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light "
    "dark;--paper:#fcfcfa;--ink:#1c2126;--soft:#5b6570;--line:#c9ced3;--card:#fff;--bad:#b3261e;"
    "--badpaper:#fdf1ef;--h0:#2f7dc0;--h1:#d97a1a;--h2:#2f9463;--h3:#8a63c9;--h4:#c4497f;--h5:#7d7a2b}\n"
    "@media "
    "(prefers-color-scheme:dark){:root{--paper:#15181b;--ink:#e6e9ec;--soft:#9aa5af;--line:#3d454d;--card:#1c2024;"
    "--bad:#ff9d92;--badpaper:#2d1c1a;--h0:#3f8fd6;--h1:#c9781f;--h2:#37a06f;--h3:#9a76d6;--h4:#cf5b8d;--h5:#908d3c}}\n"
    "@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--soft:#444;--line:#999;--card:#fff;--bad:#900;"
    "--badpaper:#fff;--h0:#2f7dc0;--h1:#d97a1a;--h2:#2f9463;--h3:#8a63c9;--h4:#c4497f;--h5:#7d7a2b}}\n"
    "*{box-sizing:border-box;-webkit-print-color-adjust:exact;print-color-adjust:exact}\n"
    "body{margin:0 auto;padding:24px 16px 48px;max-width:1080px;background:var(--paper);color:var(--ink);"
    "font:16px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",sans-serif}\n"
    "h1{font-size:1.5rem;line-height:1.25;margin:0 0 .25rem}\n"
    "h2{font-size:1.05rem;margin:0;display:flex;flex-wrap:wrap;gap:.2rem .6rem;align-items:baseline}\n"
    "h3{font-size:.8rem;font-weight:600;color:var(--soft);margin:1rem 0 .3rem}\n"
    "p{margin:.5rem 0}.lead{color:var(--soft);max-width:46rem}\n"
    "code,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans "
    "Mono\",monospace;overflow-wrap:anywhere}"
    "\n"
    ".step{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px;margin:16px 0}\n"
    "@media screen{.two{display:flex;flex-wrap:wrap;gap:0 40px}.two>*{min-width:0}}\n"
    "@media print{body{padding:0;max-width:none;font-size:10.5pt}.step{margin:8pt 0;padding:8pt "
    "10pt;break-inside:avoid}"
    ".two{display:flex;flex-wrap:wrap;gap:0 24pt}.planes svg,.cells svg{zoom:.7}}\n"
    ".n{color:var(--soft);font-weight:400;min-width:1.2rem}.how{color:var(--soft);font-weight:400;font-size:.9rem}\n"
    ".badge{font-size:.8rem;font-weight:600;border:2px solid var(--h);border-radius:99px;padding:0 .55rem;"
    "white-space:nowrap}\n"
    "dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1rem .9rem;margin:.7rem 0 "
    "0;font-size:.92rem}\n"
    "dt{color:var(--soft)}dd{margin:0;font-variant-numeric:tabular-nums}\n"
    ".note{border-left:3px solid var(--h,var(--line));padding-left:.7rem;font-size:.92rem;max-width:46rem}\n"
    ".bad{border-color:var(--bad);background:var(--badpaper)}.bad h2{color:var(--bad)}\n"
    "pre{overflow-x:auto;font-size:.82rem;line-height:1.4;margin:.6rem 0 0}\n"
    ".cells,.planes{display:flex;flex-wrap:wrap;gap:6px 0}.cells svg{margin-right:-2px}.planes{gap:10px "
    "18px;align-items:flex-start}\n"
    "figure{margin:0;min-width:0;max-width:100%}figcaption{font-size:.78rem;color:var(--soft)}\n"
    "svg{display:block;max-width:100%;height:auto;font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"
    "\"DejaVu Sans Mono\",monospace}\n"
    "svg text{fill:var(--ink);text-anchor:middle}svg .i{font-size:9.5px;fill:var(--soft)}svg .v{font-size:13px}\n"
    "svg .o{font-size:10.5px;font-weight:700}svg .u{fill:var(--soft)}svg .e{text-anchor:end}svg .b{text-anchor:start}\n"
    ".box{fill:none;stroke:var(--line)}.on{fill:var(--h);stroke:var(--h)}.off{fill:none;stroke:var(--line);"
    "stroke-dasharray:3 3}.err{fill:var(--badpaper);stroke:var(--bad);stroke-width:2}.thin{stroke-width:1}\n"
    ".axis{stroke:var(--line)}.grid{stroke:var(--line);stroke-dasharray:2 4}.true{fill:none;stroke:var(--soft);"
    "stroke-width:1}.line{fill:none;stroke:var(--h);stroke-width:2}.thin{stroke-width:1}\n"
    "table{border-collapse:collapse;font-size:.9rem;margin:.6rem 0 0}th,td{padding:.22rem .8rem .22rem "
    "0;text-align:right;"
    "font-variant-numeric:tabular-nums;border-bottom:1px solid var(--line)}th{color:var(--soft);font-weight:600;"
    "vertical-align:bottom}th:first-child,td:first-child,td.w{text-align:left}td{white-space:pre}.scroll{overflow-x:"
    "auto}\n"
    ".key{display:inline-block;width:2.6em;height:.8em;vertical-align:-.05em;border:1px solid var(--h0);"
    "background:linear-gradient(90deg,color-mix(in srgb,var(--h0) 12%,transparent),color-mix(in srgb,var(--h0) 62%,"
    "transparent))}\n"
    "footer{color:var(--soft);font-size:.8rem;margin-top:2rem}\n";

void pl_page_begin(FILE *to, const char *title, const char *lead)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
          to);
    html_text(to, title);
    fputs("</title>\n<style>\n", to);
    fputs(style, to);
    for (int i = 0; i < PL_HUES; i++)
        fprintf(to, ".h%d{--h:var(--h%d)}", i, i);
    fputs("\n</style>\n</head>\n<body>\n<h1>", to);
    html_text(to, title);
    fprintf(to, "</h1>\n<p class=\"lead\">%s</p>\n", lead);
}

void pl_page_end(FILE *to)
{
    fprintf(to, "<footer>Written by stoker %s.</footer>\n</body>\n</html>\n", stk_version());
}

stk_status pl_page_open(struct pl_page *page, stk_error *err)
{
    memset(page, 0, sizeof *page);
    page->to = open_memstream(&page->bytes, &page->size);
    return page->to ? STK_OK : stki_fail_memory(err, 0, "a page");
}

void pl_page_close(struct pl_page *page)
{
    if (page->to)
        fclose(page->to);
    free(page->bytes); /* from open_memstream, so allocated by the C library */
    memset(page, 0, sizeof *page);
}

stk_status pl_page_save(struct pl_page *page, const char *path, stk_error *err)
{
    stk_status status = STK_OK;
    bool whole = !ferror(page->to);
    FILE *file;

    whole = fclose(page->to) == 0 && whole;
    page->to = NULL;
    if (!whole)
        status = stki_fail_memory(err, (int64_t)page->size, "a page");
    file = status != STK_OK ? NULL : fopen(path, "w");
    if (status == STK_OK && !file)
        status = stki_fail_errno(err, errno, path, "cannot write");
    if (file) {
        bool fine = fwrite(page->bytes, 1, page->size, file) == page->size;
        if (fclose(file) != 0 || !fine)
            status = stki_fail_errno(err, errno, path, "writing the page");
    }
    pl_page_close(page);
    return status;
}
