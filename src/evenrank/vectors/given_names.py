"""Given names that tell a gender in text without capital letters."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from evenrank.vectors.texts import stop_words

# Names that are also ordinary words or places: in text without case they would swamp the counts.
COMMON_WORDS = frozenset(
    """
    ace amber angel april art ash aspen august autumn bailey barb baron basil bear beau bee belle
    berlin berry bill birch blaze bliss blossom blue blythe bonny booker brandy breeze brook buck
    bud buddy buffy buster cam cameo candy carol carter cash cat cedar celeste chad chance chancey
    chandler charity chase chastity cherry chin china chip christian christmas chuck cinnamon city
    clay cliff clover coal columbus constance cook cooper coral cordell cotton courtney crystal
    daily daisy dale dallas darling dawn dean deed denim denver desire destiny dewey diamond dick
    dot dove drew duke dusk dusty eagle earl early easter ebony echo eden elder else ember emerald
    era essence eve evening ever faith fallen fate faun fawn fay fern florence forest forrest foster
    fox frank freeman gale garland garnet garrison gay gem gene genesis genius german ginger glen
    glory golden good grace grady grant green grove guy hall happy harley harmony harp harvest haven
    hazel heart heath heather heaven herb hero hollow holly honey honor hope houston hunter hyacinth
    iris isle israel ivory ivy jack jade jam jasmine jasper jay jersey jesus jewel job joy july june
    junior justice kale karma king kitty lace lady lake lance land lane lark latin laurel lavender
    leaf lee leisure les liberty lily lincoln linen loan long lord lot lotus love low loyal loyalty
    luck lucky magnolia major man mandarin many maple march margarita marina marine mariner mark
    mars marsh mason mat may mead meadow melody mercedes mercy merit merry mike mil miles minor
    minty miracle misty modesty monday monroe moon mustang my myrtle nickel noble noel north ocean
    olive opal oral orange orchid osage own oz page pansy paris parker passion pat patience pax
    peace peach pearl peg penny pet petal petunia pierce pilot pleasant poppy porter precious price
    prince princess prudence purple queen quest rain raven ray rebel red reed reef regal regent
    reign rich river robin rock rocky rod roman romeo rose rosemary rosy royal ruby rue russet rusty
    rye sable sage salina sandy santa santiago savanna savannah scarlet season see senna serenity
    shad shade shadow shan shell shelter sherry shiloh sierra silver sky slate sol soldier sonny
    sparkle spring star sterling stone storm stormy sugar summer sun sunday sunny sunshine sylvan
    tad talon tanner tawny taylor teal teddy temple tennessee terrace thorn tiger timber tiny toby
    topaz treasure trinity troy true truth tuesday tulip tyler unique urban valentine van velvet
    venus vernal victor victory viola violet virginia virtue vista wade ward washington wave way
    wells west will willow win windy winter wolf wood worth york young zion
    """.split()
)


@lru_cache(maxsize=1)
def given_names() -> dict[str, tuple[str, ...]] | None:
    """Female and male given names of the US census of 1990; None unless the package `names` is installed.

    Names on both lists, stop words and names that are ordinary words too are left out.
    """
    found = find_spec("names")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent
    lists = {
        gender: [
            line.split()[0].lower() for line in (folder / f"dist.{gender}.first").read_text().splitlines()
        ]
        for gender in ("female", "male")
    }
    return clear_names(lists)


def clear_names(lists: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    """The names of each list that say a gender, and nothing else."""
    both = set(lists["female"]) & set(lists["male"])
    unclear = both | stop_words() | COMMON_WORDS
    return {gender: tuple(name for name in names if name not in unclear) for gender, names in lists.items()}
