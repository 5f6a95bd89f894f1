"""A PDF of a few lines a page, written by hand: what a test knows of it, it says itself."""

from __future__ import annotations

from collections.abc import Sequence


def pdf(pages: Sequence[Sequence[str] | None], title: str = "", day: str = "20240517") -> bytes:
    """Pages of lines in Helvetica, from the top down; one without lines has a picture and no text, None nothing."""
    objects: list[bytes] = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for lines in pages:
        shown = b" ".join(
            b"BT /F1 12 Tf 72 %d Td (%s) Tj ET" % (780 - 20 * place, line.encode("latin-1"))
            for place, line in enumerate(lines or ())
        )
        shown = shown or (b"" if lines is None else b"0 0 99 99 re f")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(shown), shown))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R >>"
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), b" ".join(kids))
    objects.append(b"<< /Title (%s) /CreationDate (D:%s120000) >>" % (title.encode("latin-1"), day.encode()))
    body, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"<< /Size %d /Root 1 0 R /Info %d 0 R >>" % (len(objects) + 1, len(objects))
    return body + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n%s\nstartxref\n%d\n%%%%EOF" % (
        len(objects) + 1, table, trailer, len(body),
    )  # fmt: skip
